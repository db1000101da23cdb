import { useEffect, useState } from "react";
import { recall, remember } from "../storage.ts";
import { IconButton } from "./icon.tsx";

type Theme = "light" | "dark";

const key = "colloquy.theme";
const darkQuery = "(prefers-color-scheme: dark)";

const chosen = (): Theme | null => {
  const theme = recall("kept", key);
  return theme === "light" || theme === "dark" ? theme : null;
};

/** Switches between light and dark. The system decides until the person chooses; choosing the same undoes it. */
export const ThemeToggle = () => {
  const [choice, setChoice] = useState(chosen);
  const [system, setSystem] = useState<Theme>(() => (matchMedia(darkQuery).matches ? "dark" : "light"));

  useEffect(() => {
    const query = matchMedia(darkQuery);
    const follow = (): void => setSystem(query.matches ? "dark" : "light");
    query.addEventListener("change", follow);
    return () => query.removeEventListener("change", follow);
  }, []);

  const theme = choice ?? system;
  const other: Theme = theme === "dark" ? "light" : "dark";
  const toggle = (): void => {
    const next = other === system ? null : other;
    setChoice(next);
    remember("kept", key, next);
    if (next === null) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
  };
  return <IconButton icon={other === "dark" ? "moon" : "sun"} label={`Use the ${other} theme`} onClick={toggle} />;
};
