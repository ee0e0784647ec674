// Draws the interactive figures of the gallery once they are visible: plotly cannot measure a
// hidden tab. On a dark page, charts are dark.
"use strict";
(() => {
  const root = document.documentElement.dataset.content_root || "";
  const boxes = new Map();
  const scripts = new Map();
  const figures = new Map();

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

  const isDark = () => document.documentElement.dataset.theme === "dark";

  const recolour = (value, dark) =>
    JSON.parse(JSON.stringify(value).replace(/#[0-9a-f]{6}/g, (colour) => dark[colour] ?? colour));

  // The pixels of the wall keep their colours, also those that charts have.
  const darken = ({ data, layout }, dark) => layout.yaxis?.scaleanchor
    ? { data, layout: { ...layout, template: recolour(layout.template, dark) } }
    : recolour({ data, layout }, dark);

  // Each file of a figure calls this.
  window.showFigure = (name, figure, dark) => {
    figures.set(name, [figure, dark]);
    const box = boxes.get(name);
    const { data, layout } = isDark() ? darken(figure, dark) : { ...figure, layout: { ...figure.layout } };
    if (layout.yaxis?.scaleanchor) {
      // The wall keeps its shape: without this, a narrow page has empty space below it.
      const [width, height] = [layout.xaxis, layout.yaxis].map(({ range }) => Math.abs(range[1] - range[0]));
      const narrower = Math.max(0, 670 - box.clientWidth);
      layout.height = layout.template.layout.height - narrower * Math.min(1, height / width);
    }
    Plotly.newPlot(box, data, layout, { responsive: true, displaylogo: false });
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

  function showTheme() {
    for (const picture of document.querySelectorAll("img.chart, .chart img")) {
      picture.dataset.light ??= picture.src;
      const [name] = picture.dataset.light.split("/").at(-1).split(".");
      picture.src = isDark() ? `${root}figures/${name}-dark.png` : picture.dataset.light;
    }
    figures.forEach((drawn, name) => window.showFigure(name, ...drawn));
  }

  showTheme();
  new MutationObserver(showTheme).observe(
    document.documentElement, { attributes: true, attributeFilter: ["data-theme"] },
  );
})();
