/**
 * Where requests may go out to (S3): https only, no credentials in the URL, no private, loopback, link-local or
 * metadata address by name. Loopback is for development only, also over http. What a name resolves to, and where an
 * answer redirects to, is to be checked again by whoever sends the request.
 */
export type OutgoingVerdict = { ok: true; url: URL } | { ok: false; reason: string };

const privateNames = /(^|\.)(localhost|local|internal|intranet|lan|home|corp|private|localdomain|home\.arpa)$/;

const inRange = (address: number, [base, bits]: [string, number]): boolean =>
  bits === 0 || address >>> (32 - bits) === numberOf(base) >>> (32 - bits);

const numberOf = (dotted: string): number => dotted.split(".").reduce((sum, part) => sum * 256 + Number(part), 0) >>> 0;

const closedRanges: [string, number][] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

const isDotted = (host: string): boolean => /^\d{1,3}(\.\d{1,3}){3}$/.test(host);

/** The eight groups of an IPv6 address as a URL writes it (lower case, without brackets). */
const groupsOf = (host: string): number[] => {
  const [head = "", tail] = host.split("::");
  const read = (part: string): number[] =>
    part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16));
  const front = read(head);
  if (tail === undefined) return front;
  const back = read(tail);
  return [...front, ...Array.from({ length: 8 - front.length - back.length }, () => 0), ...back];
};

/** Only global unicast is open (2000::/3), without what carries an IPv4 address inside, documentation or tunnels. */
const isClosedIpv6 = (host: string): boolean => {
  const [first = 0, second = 0] = groupsOf(host);
  if (first >> 13 !== 1) return true;
  return first === 0x2002 || (first === 0x2001 && (second < 0x200 || second === 0xdb8)) || first === 0x3fff;
};

const isLoopback = (host: string): boolean =>
  host === "localhost" ||
  host.endsWith(".localhost") ||
  host === "[::1]" ||
  (isDotted(host) && inRange(numberOf(host), ["127.0.0.0", 8]));

const closedReason = (host: string): string | undefined => {
  if (host.startsWith("[")) return isClosedIpv6(host.slice(1, -1)) ? "it is not a public address" : undefined;
  if (isDotted(host)) {
    return closedRanges.some((range) => inRange(numberOf(host), range)) ? "it is not a public address" : undefined;
  }
  if (/^\.|\.\.|\.$/.test(host)) return "its name has an empty part";
  if (!host.includes(".") || privateNames.test(host)) return "it names a private network";
  return undefined;
};

/** Whether `address` may be asked. `allowLoopback` is for development, and never for a redirect's target. */
export const checkOutgoing = (address: string, options: { allowLoopback: boolean }): OutgoingVerdict => {
  const refused = (reason: string): OutgoingVerdict => ({ ok: false, reason });
  if (!URL.canParse(address)) return refused("it is not a URL");
  const url = new URL(address);
  if (url.protocol !== "https:" && url.protocol !== "http:") return refused("it is not https");
  if (url.username !== "" || url.password !== "") return refused("it holds credentials: use a secret instead");
  const host = url.hostname.replace(/\.$/, "");
  if (isLoopback(host)) return options.allowLoopback ? { ok: true, url } : refused("it is this machine's own address");
  if (url.protocol !== "https:") return refused("it is not https");
  const reason = closedReason(host);
  return reason === undefined ? { ok: true, url } : refused(reason);
};
