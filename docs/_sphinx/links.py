"""Code in a text becomes a link if it is a public name, `Paired(b)` leads to `ewsg.Paired`; and types are shortened."""

from typing import Any

from catalogue import target_of_link
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.python import PyObject  # pyright: ignore[reportPrivateImportUsage]
from sphinx.transforms import SphinxTransform


class LinkCode(SphinxTransform):
    """Wraps literals in references, which stay plain code where the reference has no such name."""

    default_priority = 500

    def apply(self, **_: Any) -> None:
        """Wrap the literals of one page, except in headings and inside other links."""
        for literal in list(self.document.findall(nodes.literal)):
            target = target_of_link(literal.astext())
            if target is None or _is_inside(literal, nodes.title, nodes.reference, addnodes.pending_xref):
                continue
            options = {"refdoc": self.env.docname, "refdomain": "py", "reftype": "obj", "reftarget": target}
            link = addnodes.pending_xref("", refexplicit=True, refwarn=False, **options)
            literal.replace_self(link)
            link += literal


def _short(app: Sphinx, domain: str, kind: str, content: Any) -> None:
    """Shortens the types in a description."""
    del app, domain, kind
    for field in content.findall(nodes.field):
        for text in list(field.findall(nodes.Text)):
            short = text.replace("jaxlib._jax.Array", "Array").replace("PyTree[Any]", "PyTree")
            if short != text:
                text.parent.replace(text, nodes.Text(short))


def _is_inside(node: nodes.Node, *kinds: type) -> bool:
    parent = node.parent
    while parent is not None:
        if isinstance(parent, kinds):
            return True
        parent = parent.parent
    return False


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the transforms, and call attributes by their name."""
    next(field for field in PyObject.doc_field_types if field.name == "variable").label = "Attributes"
    app.add_transform(LinkCode)
    app.connect("object-description-transform", _short, priority=900)
    return {"parallel_read_safe": True}
