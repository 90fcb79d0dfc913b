"""A page of HTML read back: its sections, tables, words and figures."""

from html.parser import HTMLParser

_EMPTY = {"meta", "link", "br", "img", "input"}


class Page(HTMLParser):
    """The page, read strictly: an element that is not closed in its order is an error.

    Attributes:
        tables: the rows of each table, as lists of cells, by the section that holds it.
        words: the text of each section.
        attributes: (element, attributes) of everything on the page.
        ids: every id.
    """

    def __init__(self, text):
        super().__init__()
        self.tables, self.words, self.attributes, self.ids = {}, {}, [], []
        self._open, self._section = [], ""
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.attributes.append((tag, given))
        self.ids += [given["id"]] if "id" in given else []
        if tag == "section":
            self._section = given["id"]
        if tag == "table":
            self.tables.setdefault(self._section, []).append([])
        elif tag == "tr":
            self.tables[self._section][-1].append([])
        elif tag in ("td", "th"):
            self.tables[self._section][-1][-1].append("")
        if tag not in _EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in _EMPTY:
            self._open.pop()

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] == "style":
            return
        self.words[self._section] = self.words.get(self._section, "") + data
        if self._open and self._open[-1] in ("td", "th"):
            self.tables[self._section][-1][-1][-1] += data

    def count(self, tag):
        """The number of these elements on the page."""
        return sum(name == tag for name, _ in self.attributes)
