// Without this script all is there. It spares readers who use the keyboard the stops at code that fits its box,
// and folds the list of headings away where the screen is narrow.
const boxes = document.querySelectorAll("[data-scrolls]");
function onlyStopWhereSomethingScrolls() {
  for (const box of boxes) {
    if (box.scrollWidth > box.clientWidth) box.setAttribute("tabindex", "0");
    else box.removeAttribute("tabindex");
  }
}
const contents = document.querySelector(".contents details");
if (contents && matchMedia("(max-width: 70rem)").matches) contents.open = false;
onlyStopWhereSomethingScrolls();
addEventListener("resize", onlyStopWhereSomethingScrolls);
