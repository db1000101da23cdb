/**
 * The rules for every address that Colloquy calls for somebody: https only, no credentials in it, nothing private,
 * loopback or link-local, by name or by number. In development, http(s) to loopback is allowed as the configured address itself.
 */
export type OutgoingVerdict = { ok: true; url: URL } | { ok: false; reason: string };

const privateSuffixes = ["localhost", "local", "internal", "intranet", "lan", "home.arpa", "corp", "home"];

/** [first octets, prefix length] of IPv4 networks that are not the public internet (RFC 6890 and successors). */
const reservedNetworks: [string, number][] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
];

const ipv4Number = (text: string): number | undefined => {
  if (!/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) return undefined;
  return text.split(".").reduce((number, octet) => number * 256 + Number(octet), 0);
};

const isReservedV4 = (address: number): boolean =>
  reservedNetworks.some(([network, bits]) => {
    const size = 2 ** (32 - bits);
    return Math.floor(address / size) === Math.floor((ipv4Number(network) ?? 0) / size);
  });

/** The eight 16-bit groups of an address as `URL` writes it (lower case, compressed, no brackets). */
const ipv6Groups = (text: string): number[] => {
  const [head = "", tail] = text.split("::");
  const groups = (part: string): number[] =>
    part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16));
  if (tail === undefined) return groups(head);
  const [before, after] = [groups(head), groups(tail)];
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
};

/** Only 2000::/3 is the public internet; of it, not what is for documentation or carries an IPv4 address. */
const isReservedV6 = (text: string): boolean => {
  const [first = 0, second = 0] = ipv6Groups(text);
  if (first < 0x2000 || first > 0x3fff) return true;
  if (first === 0x2002 || (first === 0x2001 && (second === 0 || second === 0xdb8))) return true;
  return first === 0x3fff && second < 0x1000;
};

const isLoopback = (host: string): boolean =>
  host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);

const isPrivateHost = (host: string): boolean => {
  if (host.startsWith("[")) return isReservedV6(host.slice(1, -1));
  const address = ipv4Number(host);
  if (address !== undefined) return isReservedV4(address);
  return !host.includes(".") || privateSuffixes.some((suffix) => host === suffix || host.endsWith(`.${suffix}`));
};

/** Whether an address may be called. `reason` is one sentence for whoever configured it; it never repeats credentials. */
export const checkOutgoingUrl = (text: string, options: { development: boolean }): OutgoingVerdict => {
  if (!URL.canParse(text)) return { ok: false, reason: "it is not a URL." };
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") {
    return { ok: false, reason: "it holds credentials; name a secret instead." };
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return { ok: false, reason: "it must be an https URL." };
  const host = url.hostname.replace(/\.$/, "");
  if (options.development && isLoopback(host)) return { ok: true, url };
  if (url.protocol !== "https:") {
    return { ok: false, reason: "it must be https (http is for loopback, in development only)." };
  }
  if (isPrivateHost(host)) return { ok: false, reason: `${host} is not an address of the public internet.` };
  return { ok: true, url };
};
