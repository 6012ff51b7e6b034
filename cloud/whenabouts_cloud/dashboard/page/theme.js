// The choice of colours: as the system says, light, or dark.
//
// A plain script in the head, not a module, so that the choice is known before the first picture and nothing flashes.
// Whoever paints a canvas listens to the document's event "themechange" and reads the colours again.

(() => {
    const CHOICES = ["auto", "light", "dark"];
    const KEPT_AS = "whenabouts-theme";
    const dark = matchMedia("(prefers-color-scheme: dark)");

    function kept() {
        try {
            const choice = localStorage.getItem(KEPT_AS);
            return CHOICES.includes(choice) ? choice : "auto";
        } catch {
            return "auto"; // storage can be forbidden: the page works without it
        }
    }

    function apply(choice) {
        document.documentElement.dataset.theme = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
        const button = document.getElementById("theme");
        if (button) button.textContent = `Theme: ${choice}`;
        document.dispatchEvent(new CustomEvent("themechange"));
    }

    let choice = kept();
    apply(choice);
    dark.addEventListener("change", () => apply(choice));
    document.addEventListener("DOMContentLoaded", () => {
        apply(choice);
        document.getElementById("theme").addEventListener("click", () => {
            choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
            try {
                localStorage.setItem(KEPT_AS, choice);
            } catch {
                // only this visit knows the choice then
            }
            apply(choice);
        });
    });
})();
