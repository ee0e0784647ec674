// Browsers fetch no files from a disk. There, the search reads the texts of its results from one
// script, which docs/site/build.py writes.
"use strict";
if (location.protocol === "file:") {
  const pages = new Promise((resolve) => { window.showSearchPages = resolve; });
  window.fetch = async (url) => new Response((await pages)[url.replace(/^\.\//, "")] ?? "");
  document.head.append(Object.assign(document.createElement("script"), { src: "search_pages.js" }));
}
