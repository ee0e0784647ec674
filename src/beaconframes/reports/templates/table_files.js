// The file of a table is compressed in the page. Without a script, a click saves it as it is.
for (const link of document.querySelectorAll("a[download$='.csv.gz']")) {
  link.addEventListener("click", async (event) => {
    if (!window.DecompressionStream) return;
    event.preventDefault();
    const text = atob(link.href.slice(link.href.indexOf(",") + 1));
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const file = document.createElement("a");
    file.href = URL.createObjectURL(new Blob([await new Response(stream).arrayBuffer()], {type: "text/csv"}));
    file.download = link.download.slice(0, -3);
    file.click();
    setTimeout(() => URL.revokeObjectURL(file.href), 10000);
  });
}
