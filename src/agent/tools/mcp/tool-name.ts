/** What every provider takes as the name of a tool. */
const sound = /^[A-Za-z0-9_-]{1,64}$/;
const maxCharacters = 64;

/** FNV-1a, 32 bits: tells names apart that were made alike. */
const mark = (text: string): string => {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(36).padStart(7, "0");
};

/**
 * The name that a model calls a server's tool by: `server__tool`. One that providers do not take is made sound, always
 * in the same way, and marked, so that it is none of the server's others.
 */
export const mcpToolName = (server: string, tool: string): string => {
  const name = `${server}__${tool}`;
  if (sound.test(name)) return name;
  const suffix = `_${mark(tool)}`;
  return `${name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, maxCharacters - suffix.length)}${suffix}`;
};
