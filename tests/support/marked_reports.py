"""A report whose inputs failed, compared with the whole one: what it prints without a mark."""

import json
import re
from html.parser import HTMLParser

MARKS = ("unknown", "incomplete", "at least", "left out", "not counted", "not every epoch")
ABOUT_LOADS = ("inputs", "facts", "missing", "incomplete")
"""Frames about the loads of a report: without numbers of validators."""
STATEMENTS = ("execution_income_basis", "cost_unknown", "days_without_price", "p_corrected")
"""Columns that say themselves what a number is, or how much of it is unknown.

A probability is corrected for the comparisons that a report has.
"""


def find_silent(whole, part):
    """Return what *part* prints otherwise than *whole*, without a mark: nothing, if all is well."""
    return [
        *_compare_frames(*(json.loads(each.to_json()) for each in (whole, part))),
        *_compare_lines(whole.summarize(), part.summarize()),
        *_compare_pages(whole.to_html(), part.to_html()),
    ]


def _compare_frames(whole, part):
    marks = {(row["frame"], row["column"]) for row in part["frames"]["incomplete"]}
    for name, rows in whole["frames"].items():
        found = part["frames"].get(name)
        if name in ABOUT_LOADS or (name, None) in marks or found == rows:
            continue
        if found is None or len(found) != len(rows):
            yield f"{name}: {len(rows)} rows, {found and len(found)} now"
            continue
        for before, now in zip(rows, found, strict=True):
            for column, value in before.items():
                is_equal = _is_equal(value, now.get(column))
                # A value that is not there is no number.
                is_known = now.get(column) is not None and column not in STATEMENTS
                if not is_equal and is_known and (name, column) not in marks:
                    yield f"{name}.{column}: {value}, {now[column]} now"


def _is_equal(value, now):
    """Return whether values are equal: sums of floats differ in the last digit."""
    if isinstance(value, float) and isinstance(now, float):
        return abs(value - now) <= 1e-9 * max(abs(value), 1)
    return value == now


def _compare_lines(whole, part):
    known = {line[:19]: line for line in whole}
    for line in part:
        if line not in whole and not any(mark in line for mark in MARKS):
            yield f"text: {known.get(line[:19])!r}, {line!r} now"
    titles = {line[:19] for line in part}
    yield from (f"text: {title!r} is gone" for title in known if title not in titles)


class Blocks(HTMLParser):
    """Collects the texts of a page: of each card's figures, each chart and each section."""

    def __init__(self, page):
        super().__init__()
        self.found, self.section, self.title, self.place, self.count = {}, "", "", "", 0
        self.feed(re.sub(r"<(style|script)[^>]*>.*?</\1>", "", page, flags=re.DOTALL))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "section":
            self.section, self.title, self.place = attributes.get("id"), "", ""
        if tag in ("h2", "dt"):
            self.title, self.place = "", "title"
        elif tag in ("dd", "p") and self.section == "answer":
            self.place = "value"
        if tag == "figure":
            self.count += 1
            self.place = f"figure {self.count}"
            self.add(attributes["aria-label"])
        if attributes.get("class") == "missing":
            # What a reader sees in another colour.
            self.add("incomplete: ")

    def handle_endtag(self, tag):
        if tag in ("h2", "dt", "figure"):
            self.place = ""
        elif tag in ("dd", "dl"):
            self.title = ""

    def handle_data(self, data):
        if self.place == "title":
            self.title += data
        elif data.strip():
            self.add(data.strip())

    def add(self, text):
        if not self.place.startswith("figure"):
            key = f"{self.section} {self.title}" if self.section == "answer" else self.section
        else:
            # By the title of the chart, which begins its text alternative.
            key = self.place
        self.found[key] = self.found.get(key, "") + " " + text


def _compare_pages(whole, part):
    before, now = (
        {
            (re.split(r"[:.(]", text)[0].strip() if key.startswith("figure") else key): text
            for key, text in Blocks(page).found.items()
        }
        for page in (whole, part)
    )
    for key, text in now.items():
        # What was loaded, and when, differs in any case; it has no number of validators.
        if key in ("trust", "", "answer ") or before.get(key) == text:
            continue
        if not any(mark in text.lower() for mark in MARKS):
            yield f"page, {key}: {before.get(key)!r}, {text!r} now"
