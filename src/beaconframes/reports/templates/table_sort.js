for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.firstChild.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const isNumber = head.classList.contains("n");
    const read = (row) => {
      const text = row.cells[column].textContent;
      const number = parseFloat(text.replace(/[,<]/g, "").replace("\u2212", "-"));
      return isNumber ? (isNaN(number) ? null : number) : text || null;
    };
    const rows = [...table.tBodies[0].rows].map((row) => [read(row), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }));
}
// Browsers repeat the head of a table on each page, but not one with buttons.
const buttons = [...document.querySelectorAll("th button")].map((button) => [button, document.createElement("span")]);
addEventListener("beforeprint", () => buttons.forEach(([button, span]) => {
  span.textContent = button.textContent;
  button.replaceWith(span);
}));
addEventListener("afterprint", () => buttons.forEach(([button, span]) => span.replaceWith(button)));
