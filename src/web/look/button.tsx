import type { ComponentProps } from "react";
import { Icon, type IconName } from "./icon.tsx";

type ButtonProps = ComponentProps<"button"> & { look?: "primary" | "plain" | "danger" };

export const Button = ({ look, ...button }: ButtonProps) => (
  <button type="button" className={look ? `button button-${look}` : "button"} {...button} />
);

type IconButtonProps = ComponentProps<"button"> & { icon: IconName; label: string; size?: number };

/** A button that shows nothing but an icon; `label` is its name. */
export const IconButton = ({ icon, label, size = 20, className = "", ...button }: IconButtonProps) => (
  <button type="button" className={`icon-button ${className}`} aria-label={label} {...button}>
    <Icon name={icon} size={size} />
  </button>
);

/** A button that stands in a text and looks like a link. */
export const LinkButton = (button: ComponentProps<"button">) => (
  <button type="button" className="link-button" {...button} />
);
