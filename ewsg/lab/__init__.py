"""The reproduction lab: experiments, accuracy benchmark, demonstration, figures. Only `cli` opens its door."""
