// Draws the interactive figures of the gallery once they are visible: plotly cannot measure a
// hidden tab.
"use strict";
(() => {
  const root = document.documentElement.dataset.content_root || "";
  const boxes = new Map();
  const scripts = new Map();

  function load(name) {
    if (!scripts.has(name)) {
      scripts.set(name, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = `${root}figures/${name}.js`;
        script.onload = resolve;
        script.onerror = reject;
        document.head.append(script);
      }));
    }
    return scripts.get(name);
  }

  // Each file of a figure calls this.
  window.showFigure = (name, figure) => {
    const box = boxes.get(name);
    const layout = { ...figure.layout };
    if (layout.yaxis?.scaleanchor) {
      // The wall keeps its shape: without this, a narrow page has empty space below it.
      const [width, height] = [layout.xaxis, layout.yaxis].map(({ range }) => Math.abs(range[1] - range[0]));
      layout.height -= Math.max(0, 670 - box.clientWidth) * Math.min(1, height / width);
    }
    Plotly.newPlot(box, figure.data, layout, { responsive: true, displaylogo: false });
  };

  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) {
        observer.unobserve(target);
        load("plotly.min").then(() => load(target.dataset.figure));
      }
    }
  }, { rootMargin: "200px" });

  for (const box of document.querySelectorAll("[data-figure]")) {
    boxes.set(box.dataset.figure, box);
    observer.observe(box);
  }
})();
