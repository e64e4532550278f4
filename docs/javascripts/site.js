// What the theme leaves out for readers who do not see the page or use no mouse. It makes some of its
// elements after a page has loaded, so each change of the page is looked at.
function complete() {
  for (const nav of document.querySelectorAll("nav.md-code__nav:not([role])")) nav.setAttribute("role", "none");
  for (const part of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex]), pre > code:not([tabindex])")) {
    if (part.scrollWidth > part.clientWidth) part.setAttribute("tabindex", "0");
  }
  // Navigation and table of contents have the name of the page, both.
  for (const nav of document.querySelectorAll("nav.md-nav[aria-labelledby]")) {
    const label = document.getElementById(nav.getAttribute("aria-labelledby"));
    const level = nav.dataset.mdLevel;
    nav.setAttribute("aria-label", `${label ? label.textContent.trim() : "pages"}, level ${level}`);
    nav.removeAttribute("aria-labelledby");
  }
}

new MutationObserver(complete).observe(document.documentElement, { childList: true, subtree: true });
addEventListener("resize", complete);
complete();
