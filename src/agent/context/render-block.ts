import type { Permission } from "../../protocol/block.ts";
import { quote } from "./quote.ts";

/**
 * A block as it stands in a prompt. What it holds comes from anybody, so whatever could begin or end a block in it gets
 * a backslash after its `<`, one more than there were: nothing in it closes it, and what was there can be read (S2).
 */
const tag = /<(\\*)(\/?)(?=block)/gi;

export const fenced = (content: string): string => content.replace(tag, "<\\$1$2");

export type FencedBlock = {
  label: string;
  permission: Permission;
  /** The name of the agent that shares it. */
  sharedFrom?: string | undefined;
  /** Left out where descriptions are off. */
  description?: string | undefined;
  rendered: string;
};

export const renderBlock = ({ label, permission, sharedFrom, description, rendered }: FencedBlock): string => {
  const from = sharedFrom === undefined ? "" : ` shared_from=${quote(sharedFrom).replaceAll("<", "\\u003c")}`;
  const parts = [description ?? "", rendered].filter((part) => part !== "").map(fenced);
  return `<block:${label} permission="${permission}"${from}>\n${parts.join("\n\n")}\n</block:${label}>`;
};
