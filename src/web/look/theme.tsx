import { useState, useSyncExternalStore } from "react";
import { recall, remember } from "../storage.ts";
import { IconButton } from "./button.tsx";

const key = "colloquy.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

const followSystem = (listener: () => void): (() => void) => {
  dark.addEventListener("change", listener);
  return () => dark.removeEventListener("change", listener);
};

/** Switches between light and dark. The system decides until the person chooses; choosing the same undoes it. */
export const ThemeToggle = () => {
  const [choice, setChoice] = useState(() => recall("kept", key));
  const isSystemDark = useSyncExternalStore(followSystem, () => dark.matches);
  const isDark = choice === "dark" || (choice !== "light" && isSystemDark);
  const other = isDark ? "light" : "dark";
  const toggle = (): void => {
    const next = isDark === isSystemDark ? other : null;
    setChoice(next);
    remember("kept", key, next);
    document.documentElement.style.colorScheme = next ?? "";
  };
  return <IconButton icon={isDark ? "sun" : "moon"} label={`Use the ${other} theme`} onClick={toggle} />;
};
