/**
 * Names that are known to stand for private hosts (C16). No library keeps such lists: those against forged requests look
 * at what a name resolves to, which a Worker cannot.
 */
const wordsOf = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** Networks' own name servers: reserved names (RFC 6761, 6762, 8375, 9476), those ICANN never delegates, products'. */
const privateSuffixes = wordsOf(`
  localhost local localnet localdomain internal intranet private lan home corp mail home.arpa invalid test onion alt
  svc cluster default kube-system kube-public consul nomad docker podman mesos openstacklocal novalocal
  mshome.net fritz.box workgroup domain belkin dlink
`);

/** Metadata servers of clouds, which tell a machine its credentials. */
const metadataNames = wordsOf(`
  metadata.goog metadata.tencentyun.com metadata.cloud.ibm.com metadata.packet.net metadata.platformequinix.com
`);

/** Public domains whose names resolve to whatever address they spell, in any way of spelling it, or to this machine. */
const rebindingDomains = wordsOf(`
  nip.io sslip.io xip.io xip.name backname.io traefik.me ip6.name local-ip.co local-ip.sh local-ip.medicmobile.org 1u.ms rbndr.us rebind.network rebind.it ceye.io godnslog.com
  localtest.me localdev.me lvh.me vcap.me lacolhost.com localho.st local.gd smackaho.st fuf.me ulh.us localhost.tv localhst.co.uk
  localhost.direct ddev.site lndo.site lcl.host lcl.dev localcert.net loopback.world
  localh.st 42foo.com localfabriek.nl localmachine.info localmachine.name local.sisteminha.com yoogle.com mouse-potato.com shed.host
`);

/** The name and the domains that it lies in, the widest last. */
const domainsOf = (host: string): string[] => {
  const labels = host.split(".");
  return labels.map((_, index) => labels.slice(index).join("."));
};

/** An IPv4 address as names of such domains spell it. Each place of a name may begin one. */
const decimal = /(?<![^._-])(?=(\d{1,3})[._-](\d{1,3})[._-](\d{1,3})[._-](\d{1,3})(?![^._-]))/g;
/** Loopback and metadata alone: eight hexadecimal digits are also what previews of a commit are named by. */
const hexadecimal = /(?<![^._-])(?:0x)?(?:7f0000[\da-f]{2}|a9fea9fe)(?![^._-])/;

/** Why a name stands for a private host, as far as the name tells. `isClosed`: of a dotted IPv4 address. */
export const privateNameReason = (host: string, isClosed: (address: string) => boolean): string | undefined => {
  const domains = domainsOf(host);
  if (domains.length === 1 || domains.some((each) => privateSuffixes.has(each) || metadataNames.has(each))) {
    return "it names a private network";
  }
  const addresses = Array.from(host.matchAll(decimal), (match) => match.slice(1).join("."));
  if (domains.some((each) => rebindingDomains.has(each)) || addresses.some(isClosed) || hexadecimal.test(host)) {
    return "its name stands for an address of a private network";
  }
  return undefined;
};
