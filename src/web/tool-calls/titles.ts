/** Names as programs write them, as a person reads them: `fetchWeather`, `fetch_weather` are "Fetch weather". */
export const titleOf = (name: string): string => {
  const words = name
    .replace(/([\p{Ll}\d])(\p{Lu})/gu, "$1 $2")
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2")
    .split(/[\s_.-]+/)
    .filter(Boolean)
    .map((word) => (/^\p{Lu}{2,}\d*$/u.test(word) ? word : word.toLowerCase()));
  const [first = name, ...rest] = words;
  return [first.charAt(0).toUpperCase() + first.slice(1), ...rest].join(" ");
};

/** A tool's name: that of an MCP server's tool says whose it is. */
export const toolTitle = (name: string): { title: string; server: string | null } => {
  const [server, ...rest] = name.split("__");
  return rest.length > 0 && server
    ? { title: titleOf(rest.join("_")), server }
    : { title: titleOf(name), server: null };
};
