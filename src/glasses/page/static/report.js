// The charts of a report, out of the data in the file.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const draw = () => {
    if (!data.model.plan) return;
    GlassesCharts.all(document.getElementById("charts"), data.state, data.model, null);
    GlassesCharts.forecast(document.getElementById("forecast"), data.state, data.model.forecast);
  };
  draw();
  window.addEventListener("resize", draw);
})();
