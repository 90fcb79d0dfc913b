"""The sites of a NumPyro model: which are data, and what cannot be split over the rows of one plate."""

from ...errors import InputError, shown
from ..constraints import distributions
from .model import Site, is_latent


def check_sites(sites: dict[str, Site], plate: str | None) -> str:
    """The name of the plate of the data; raises InputError for sites that cannot be split over its rows."""
    samples = {name: site for name, site in sites.items() if site["type"] == "sample"}
    unit = distributions().Unit
    observed = {name: site for name, site in samples.items() if site["is_observed"]}
    data = {name: site for name, site in observed.items() if not isinstance(site["fn"], unit) or _plates(site)}
    for name, site in sites.items():
        if site["type"] == "param":
            raise InputError(f"the NumPyro model has a parameter without a prior, {name}: write numpyro.sample")
        if is_latent(site) and site["fn"].support.is_discrete:
            raise InputError(
                f"the latent site {name} is discrete, and Langevin dynamics moves real numbers: sum it out of the "
                "likelihood (e.g. dist.MixtureSameFamily), or use NumPyro's own samplers"
            )
    outside = next((name for name, site in data.items() if not _plates(site)), None)
    if outside or not data:
        where = f"the observed site {outside} is outside of any plate" if outside else "the model observes nothing"
        raise InputError(
            f"{where}, so that its rows cannot be told apart: put the likelihood into with numpyro.plate(name, n)"
        )
    plate = _one_plate(sites, data, plate)
    for name, site in data.items():
        if plate not in _plates(site):
            raise InputError(f"the observed site {name} is outside of the plate {plate}: a posterior has one data set")
    for name, site in samples.items():
        if is_latent(site) and plate in _plates(site):
            raise InputError(
                f"the latent site {name} is inside the plate {plate}, one value for every row: integrate it out, give "
                "its observed values, or use NumPyro's own samplers, which move all of them"
            )
    return plate


def _plates(site: Site) -> tuple[str, ...]:
    return tuple(frame.name for frame in site["cond_indep_stack"])


def _one_plate(sites: dict[str, Site], data: dict[str, Site], plate: str | None) -> str:
    if plate is not None:
        if not isinstance(plate, str) or sites.get(plate, {}).get("type") != "plate":
            raise InputError(f"the NumPyro model has no plate {shown(plate)}: give the name of one, or leave it out")
        return plate
    names = {name: None for site in data.values() for name in _plates(site)}
    if len(names) > 1:
        raise InputError(
            f"observed sites are in several plates, {', '.join(names)}: a posterior is a sum over the rows of one; if "
            "all of them are inside one of these, name it with plate="
        )
    return next(iter(names))
