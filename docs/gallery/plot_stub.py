"""
Stub
====
"""
# %%
# text
x = 1
