// Before the first paint, so that a chosen theme does not flash the other one. `look/theme.tsx` writes it.
try {
  const theme = localStorage.getItem("colloquy.theme");
  if (theme === "light" || theme === "dark") document.documentElement.style.colorScheme = theme;
} catch {
  // No storage: the system's preference holds.
}
