"""The documentation site: `make docs` builds it into site/, without a network, warnings being errors."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_sphinx"))

import ewsg

project = "ewsg"
author = "The ewsg developers"
copyright = "the ewsg developers. Apache-2.0"
version = release = ewsg.__version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "contents",  # this and the next three are in docs/_sphinx
    "docstrings",
    "links",
    "reference",
]
exclude_patterns = ["_sphinx", "gallery", "**/sg_execution_times.rst", "sg_execution_times.rst"]
highlight_language = "none"  # blocks without a language show what a command prints
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 600  # one argument per line takes a screen for `sample`
add_module_names = False
smartquotes_action = "D"  # dashes only: r' is the next r

# Markdown: headings can be linked to, as GitHub does; documents outside this folder are included by pages of it.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

# Inventories are files of this repository (tools/inventories.py): nothing is requested when the site is built.
_ELSEWHERE = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "jax": "https://docs.jax.dev/en/latest/",
    "equinox": "https://docs.kidger.site/equinox/",
    "arviz": "https://python.arviz.org/en/stable/",
    "numpyro": "https://num.pyro.ai/en/stable/",
}
intersphinx_mapping = {name: (address, f"inventories/{name}.inv") for name, address in _ELSEWHERE.items()}

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["examples"],
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "matplotlib_animations": False,
    "backreferences_dir": None,
    "within_subsection_order": "contents.first_examples_first",
    "thumbnail_size": (420, 280),
    "image_srcset": ["2x"],
}

html_theme = "pydata_sphinx_theme"
html_title = "ewsg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {"text": "ewsg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_exclude = ".linenos, .gp, .go"
suppress_warnings = ["config.cache"]
