import { privateNameReason } from "./private-names.ts";

/**
 * Where requests may go out to (S3, C16): https only, no credentials in the URL. No private, loopback, link-local or
 * metadata address, and no name that is known to stand for one. Loopback is for development only, also over http. The
 * sender of the request checks again where an answer redirects to. What an unknown name resolves to is seen by the
 * network alone: `global_fetch_strictly_public` in wrangler.toml keeps Cloudflare's to public addresses.
 */
export type OutgoingVerdict = { ok: true; url: URL } | { ok: false; reason: string };

const numberOf = (dotted: string): number => dotted.split(".").reduce((sum, part) => sum * 256 + Number(part), 0) >>> 0;

/** Whether an IPv4 address lies in one of these networks, such as `10.0.0.0/8`. */
const isWithin = (host: string, networks: string[]): boolean =>
  networks.some((network) => {
    const [base = "", bits] = network.split("/");
    const shift = 32 - Number(bits);
    return numberOf(host) >>> shift === numberOf(base) >>> shift;
  });

const loopback = ["127.0.0.0/8"];
const closedNetworks = [
  ...loopback,
  ..."0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24".split(" "),
  ..."192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24".split(" "),
  ..."224.0.0.0/4 240.0.0.0/4".split(" "),
];

const isDotted = (host: string): boolean => /^\d{1,3}(\.\d{1,3}){3}$/.test(host);

/** The eight groups of an IPv6 address, without brackets. */
export const ipv6Groups = (host: string): number[] => {
  const [head = "", tail] = host.split("::");
  const read = (part = ""): number[] => part.split(":").flatMap((group) => (group ? [Number.parseInt(group, 16)] : []));
  const [front, back] = [read(head), read(tail)];
  const zeros = tail === undefined ? 0 : 8 - front.length - back.length;
  return [...front, ...Array.from({ length: zeros }, () => 0), ...back];
};

/** Only global unicast is open (2000::/3), without what carries an IPv4 address inside, documentation or tunnels. */
const isClosedIpv6 = (host: string): boolean => {
  const [first = 0, second = 0] = ipv6Groups(host);
  if (first >> 13 !== 1) return true;
  return first === 0x2002 || (first === 0x2001 && (second < 0x200 || second === 0xdb8)) || first === 0x3fff;
};

const isLoopback = (host: string): boolean =>
  host === "localhost" ||
  host.endsWith(".localhost") ||
  host === "[::1]" ||
  (isDotted(host) && isWithin(host, loopback));

const closedReason = (host: string): string | undefined => {
  if (host.startsWith("[")) return isClosedIpv6(host.slice(1, -1)) ? "it is not a public address" : undefined;
  if (isDotted(host)) return isWithin(host, closedNetworks) ? "it is not a public address" : undefined;
  if (/^\.|\.\.|\.$/.test(host)) return "its name has an empty part";
  return privateNameReason(host, (address) => isWithin(address, closedNetworks));
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
