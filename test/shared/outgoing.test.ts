import { describe, expect, test } from "vitest";
import { checkOutgoing } from "../../src/shared/outgoing.ts";

const allowed = (url: string, allowLoopback = false): boolean => checkOutgoing(url, { allowLoopback }).ok;

describe("checkOutgoing", () => {
  test.each([
    "https://api.example.com/v1",
    "https://8.8.8.8/v1",
    "https://[2606:4700::1111]/",
    "https://example.com.:8443/a?b",
  ])("[S3] %s may be called", (url) => {
    expect(allowed(url)).toBe(true);
  });

  const refused = `
    ftp://example.com/ javascript:alert(1) http://example.com/ https://user:pass@example.com/
    https://user@example.com/ https://localhost/ https://a.localhost/ https://router/
    https://metadata.google.internal/ https://printer.local/ https://localhost../ https://printer.local../
    https://10.0.0.1../ https://a..example.com/ https://.example.com/ https://ｌｏｃａｌｈｏｓｔ/ https://①⓪.0.0.1/
    https://017700000001/ https://127.0.0.1/ https://127.1/ https://2130706433/ https://0x7f.0.0.1/ https://0/
    https://10.1.2.3/ https://100.64.0.1/ https://169.254.169.254/latest/meta-data https://172.31.0.1/
    https://192.168.1.1/ https://224.0.0.1/ https://255.255.255.255/ https://[::1]/ https://[::]/
    https://[::ffff:10.0.0.1]/ https://[fe80::1]/ https://[fd00::1]/ https://[64:ff9b::a00:1]/
    https://[2002:a00:1::]/
  `;
  test.each(["no url", ...refused.trim().split(/\s+/)])("[S3] %s may not", (url) => {
    expect(allowed(url)).toBe(false);
  });

  test.each(["http://localhost:11434/v1", "http://127.0.0.1:8080", "https://[::1]:1/", "http://a.localhost/"])(
    "[S3] %s is loopback: in development only",
    (url) => {
      expect([allowed(url, true), allowed(url, false)]).toEqual([true, false]);
    },
  );

  test.each(["http://192.168.1.1/", "https://10.0.0.1/", "http://169.254.169.254/", "http://127.0.0.1.nip.example/"])(
    "[S3] %s is not loopback, in development neither",
    (url) => {
      expect(allowed(url, true)).toBe(false);
    },
  );

  const named = `
    https://127.0.0.1.nip.io/ https://app.10.0.0.1.sslip.io/ https://7f000001.nip.io/ https://NIP.IO/ https://nip.io./
    https://localtest.me/ https://x.localdev.me/ https://a.lvh.me/ https://169-254-169-254.traefik.me/ https://7f000001.c0a80001.rbndr.us/
    https://kubernetes.default.svc/ https://db.prod.svc.cluster.local/ https://vault.service.consul/ https://x.home.arpa/
    https://host.docker.internal/ https://app.test/ https://10-1-2-3.example.com/ https://ip-192-168-0-1.example.com/
    https://a.172.16.0.9.example.org/ https://metadata/ https://xn--a.svc./
    https://8.8.8.8.10.0.0.1.example.com/ https://1-10-0-0-1.example.com/ https://8-8-8-8.a.192-168-0-1.example.com/
    https://10.0-0.1.example.com/ https://ip_10_0_0_1.example.com/ https://a.7f000001.example.com/
    https://web-0x7f000001.example.com/ https://a9fea9fe.example.com/ https://app-127-0-0-1.example.com/
    https://kubernetes.default/ https://dns.kube-system/ https://x.mshome.net/ https://nas.fritz.box/ https://www.corp/
    https://a.openstacklocal/ https://metadata.goog/ https://metadata.tencentyun.com/ https://api.metadata.cloud.ibm.com/
    https://a.b.ddev.site/ https://localhost.direct/ https://x.lcl.host/ https://a.local-ip.sh/ https://0.xip.name/
    https://--1.sslip.io/ https://fd00--1.sslip.io/ https://0a000001.nip.io/ https://a.b.c.loopback.world/
    https://localh.st/ https://a.42foo.com/ https://local.sisteminha.com/ https://localmachine.name/ https://x.shed.host/
  `;
  test.each(named.trim().split(/\s+/))("[C16] %s is private by name, in development too", (url) => {
    expect([allowed(url), allowed(url, true)]).toEqual([false, false]);
  });

  test.each([
    "https://snip.io/",
    "https://nip.io.example.com/",
    "https://ec2-54-88-1-2.compute-1.amazonaws.com/",
    "https://8-8-8-8.example.com/",
    "https://v1.2.3.example.com/",
    "https://api.svc.example.com/",
    "https://default.example.com/",
    "https://0a1b2c3d.project.pages.dev/",
    "https://10.0.0.example.com/",
    "https://a7f000001b.example.com/",
    "https://x110-0-0-1.example.com/",
  ])("[C16] %s only looks like one", (url) => {
    expect(allowed(url)).toBe(true);
  });

  test("[S3] a reason never repeats credentials", () => {
    expect(JSON.stringify(checkOutgoing("https://user:hunter2@x.com", { allowLoopback: true }))).not.toContain(
      "hunter2",
    );
  });
});
