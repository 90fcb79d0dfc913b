"""The reproduction lab: experiments, accuracy benchmark, demonstration, figures. Imported only by `cli`."""
