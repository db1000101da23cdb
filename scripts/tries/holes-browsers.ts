import { setTimeout as wait } from "node:timers/promises";
import type { Browser, Page } from "playwright-core";
import { launchBrowser } from "../../test/e2e/support/browser.ts";
import { type Message, named, order, type Stage, type Tries } from "./holes-stage.ts";
import { until } from "./scene.ts";

/** Holes 1, 4 and 9 in the browsers of the victim and another; the attacker's page is on another port of the host. */
const open = async (browser: Browser, address: string, beside?: Page): Promise<Page> => {
  const context = beside?.context() ?? (await browser.newContext());
  const page = await context.newPage();
  await page.goto(address);
  return page;
};

const textOf = (page: Page): Promise<string> => page.evaluate(() => document.documentElement.outerHTML);

const enter = async (page: Page, name: string): Promise<void> => {
  await page.getByRole("navigation", { name: "Spaces" }).getByRole("link", { name }).click();
  await page.getByRole("combobox", { name: `Message to ${name}` }).waitFor();
};

const cardInBrowsers = async (stage: Stage, { attack }: Tries, his: Browser, hers: Browser): Promise<void> => {
  const { house, own } = stage;
  const [mona, otto] = [await house.addPerson(named("Mona")), await house.addPerson(named("Otto"))];
  const tool = { name: "sendEmail", description: "Sends", inputSchema: { type: "object" }, executionType: "gateway" };
  const approval = { approvers: [mona.id] };
  const agent = await stage.agent(named("Clerk"), {
    tools: [{ ...tool, execution: { url: `${own.url}/mail`, body: "{{input}}" }, approval }],
  });
  const office = named("Office");
  const space = await stage.space(office, [mona.id, otto.id, agent]);
  const [victim, other] = [await open(hers, await mona.link()), await open(his, await otto.link())];
  await Promise.all([enter(victim, office), enter(other, office)]);
  const seen: string[] = [];
  const ask = async (input: object): Promise<Message> => {
    await stage.say(space, otto.token, order([["sendEmail", input]]));
    const card = await stage.card(space, "requires_action", seen);
    seen.push(card.id);
    return card;
  };
  const card = (page: Page) => page.getByRole("region", { name: /^Send email, / }).last();
  const wire = `Wire 1,000,000 to account 7.\n${"Please be quick. ".repeat(60)}THE-LAST-WORDS`;
  const input = {
    ...{
      to: "bank\u202eelpmaxe.mail\u200b",
      message: wire,
      options: ["ok"],
      question: "Send the [weekly](https://safe.example) digest?",
    },
    ...{
      html: "<img src=x onerror='window.pwned=1'><script>window.pwned=1</script>",
      shown: [{ path: "input.to", text: "friend" }],
    },
    ...{ awaits: { shown: [] }, schema: { type: "object" }, multiple: true, prompt: "PROMPT-WORDS" },
  };
  await ask(input);
  await card(victim).waitFor();
  await attack(
    1,
    "in the page: every field is on the card, and nothing of it is markup, a link or a script",
    async () => {
      const text = (await card(victim).allInnerTexts()).join("");
      const wanted = [
        "Wire 1,000,000",
        "PROMPT-WORDS",
        "options[0]",
        "bank\\u{202E}elpmaxe.mail\\u{200B}",
        "<img src=x",
        "multiple",
        "friend",
        `${own.url}/mail`,
      ];
      const pwned = await victim.evaluate(() => "pwned" in window);
      const links = await card(victim).locator("a[href*='safe.example'], img, script").count();
      const raw = /[\u202e\u200b]/.test(text);
      return [
        ...wanted.filter((each) => !text.includes(each)),
        ...(pwned || links > 0 ? ["markup"] : []),
        ...(raw ? ["raw invisible characters"] : []),
      ];
    },
  );
  await attack(
    1,
    "in the page: no click, key or script on the button approves before the folded text was read",
    async () => {
      const button = card(victim).getByRole("button", { name: "Approve" });
      // Other holes' requests may come late.
      const mails = (): number => own.requests.filter(({ body }) => body.includes("THE-LAST-WORDS")).length;
      await button.evaluate((element: HTMLButtonElement) => {
        element.click();
        element.dispatchEvent(new MouseEvent("click", { bubbles: true }));
        element.closest("form")?.requestSubmit();
      });
      await button.focus().catch(() => undefined);
      await victim.keyboard.press("Enter");
      await victim.keyboard.press("Space");
      await wait(1500);
      const isDisabled = await button.isDisabled();
      return isDisabled && mails() === 0 ? undefined : { isDisabled, sent: mails() };
    },
  );
  await attack(
    1,
    "in the page: who is no approver has no button that works; who is, reads the last words and then sends what was shown",
    async () => {
      for (const each of await card(other)
        .getByText(/^Read all/)
        .all())
        await each.click();
      const hasButton = await card(other).getByRole("button", { name: "Approve" }).isEnabled();
      const before = own.requests.length;
      for (const each of await card(victim)
        .getByText(/^Read all/)
        .all())
        await each.click();
      const isRead = (await card(victim).allInnerTexts()).join("").includes("THE-LAST-WORDS");
      await card(victim).getByRole("button", { name: "Approve" }).click();
      const sent = await until("request", async () => own.requests.slice(before).find(({ path }) => path === "/mail"));
      const isSame = JSON.stringify(JSON.parse(sent.body)).includes("THE-LAST-WORDS");
      return hasButton || !isRead || !isSame ? { hasButton, isRead, sent: sent.body.slice(0, 300) } : undefined;
    },
  );
  await attack(
    1,
    "in the page: text without a blank of 5,000 characters, and 100 lines, cover nothing of a card up",
    async () => {
      await ask({ a: "W".repeat(5000), b: "\n".repeat(100), z: "AFTER-ALL" });
      await card(victim).getByText("AFTER-ALL").waitFor();
      for (const each of await card(victim)
        .getByText(/^Read all/)
        .all())
        await each.click();
      const hidden = await card(victim).evaluate((element) => {
        const box = element.getBoundingClientRect();
        const leaves = [...element.querySelectorAll("*")].filter(
          (one) => one.childElementCount === 0 && one.textContent?.includes("AFTER-ALL"),
        );
        return leaves.some(
          (one) => one.getBoundingClientRect().right > box.right + 1 || one.getBoundingClientRect().height < 8,
        );
      });
      return hidden ? "AFTER-ALL is cut off" : undefined;
    },
  );
  await Promise.all([victim.context().close(), other.context().close()]);
};

const sessionInBrowsers = async (stage: Stage, { attack }: Tries, his: Browser, hers: Browser): Promise<void> => {
  const { house, own, url, http } = stage;
  const [ada, eve] = [await house.addPerson(named("Ada")), await house.addPerson(named("Eve"))];
  const name = named("Square");
  const square = await stage.space(name, [ada.id, eve.id]);
  const sendersOf = async (text: string) =>
    (await stage.messages(square)).filter((message) => message.text === text).map(({ sender }) => sender.id);
  const victim = await open(hers, await ada.link());
  await enter(victim, name);
  const who = async (page: Page) =>
    page.evaluate(
      async () =>
        ((await (await fetch("/v1/session")).json()) as { session: { entity: { id: string } } | null }).session?.entity
          .id,
    );
  const evil = `${own.url}/evil`;
  const pages = new Map<string, string>();
  own.answer = async ({ path }) => ({
    headers: { "content-type": "text/html" },
    html: pages.get(path) ?? "<p>evil</p>",
  });

  await attack(
    9,
    "in the page: a link of somebody else, pasted, opened by a page elsewhere or set as the hash, takes no session unasked",
    async () => {
      const taken: string[] = [];
      const links = [await eve.link(), await eve.link(), await eve.link()];
      const opened = await open(hers, links[0] ?? "", victim);
      await opened.getByRole("dialog", { name: "Sign in by this link?" }).waitFor();
      if ((await who(opened)) !== ada.id) taken.push("opened");
      await opened.reload();
      if ((await who(opened)) !== ada.id) taken.push("reloaded");
      const from = await open(hers, evil, victim);
      const [popup] = await Promise.all([
        victim.context().waitForEvent("page"),
        from.evaluate((link) => void window.open(link), links[1] ?? ""),
      ]);
      await popup.waitForLoadState();
      await wait(1500);
      if ((await who(popup)) !== ada.id) taken.push("by a popup");
      await victim.evaluate((link) => {
        location.hash = new URL(link).hash;
      }, links[2] ?? "");
      await wait(1000);
      if ((await who(victim)) !== ada.id) taken.push("by a hash");
      const { token } = JSON.parse(
        (await http("POST", "/v1/tokens", { bearer: stage.key, body: { entityId: eve.id } })).text,
      ) as { token: string };
      const old = await open(hers, `${url}/#token=${token}`, victim);
      await wait(1000);
      if ((await who(old)) !== ada.id) taken.push("by #token=");
      for (const page of [opened, from, popup, old]) await page.close();
      await victim.goto(`${url}/#${square}`);
      return taken;
    },
  );
  await attack(
    9,
    "in the page: a page on another port reads, writes, signs in or out and follows nothing by the victim's cookie",
    async () => {
      const page = await open(hers, evil, victim);
      const code = (await eve.link()).split("#sign-in=")[1];
      const got = await page.evaluate(
        async ({ url, square, code }) => {
          const found: string[] = [];
          const json = { "content-type": "application/json" };
          const tries: [string, RequestInit][] = [
            [`/v1/spaces/${square}/messages`, {}],
            ["/v1/session", {}],
            [`/v1/spaces/${square}/messages`, { method: "POST", body: '{"text":"by evil"}', headers: json }],
            [`/v1/spaces/${square}/messages`, { method: "POST", body: '{"text":"by evil"}', mode: "no-cors" }],
            ["/v1/session", { method: "POST", body: JSON.stringify({ code, replace: true }), headers: json }],
            ["/v1/session", { method: "POST", body: JSON.stringify({ code, replace: true }), mode: "no-cors" }],
            ["/v1/session", { method: "DELETE" }],
          ];
          for (const [path, init] of tries) {
            const answer = await fetch(url + path, { ...init, credentials: "include" }).catch(() => undefined);
            if (answer?.ok) found.push(`${init.method ?? "GET"} ${path}: ${await answer.text()}`);
          }
          const isOpen = await new Promise<boolean>((told) => {
            const line = new WebSocket(`${url.replace("http", "ws")}/v1/spaces/${square}/stream?cursor=0`);
            line.onmessage = () => told(true);
            line.onerror = () => told(false);
          });
          if (isOpen) found.push("a socket");
          const source = new EventSource(`${url}/v1/spaces/${square}/events?cursor=0`, { withCredentials: true });
          const isHeard = await new Promise<boolean>((told) => {
            source.onopen = () => told(true);
            source.onerror = () => told(false);
          });
          source.close();
          if (isHeard) found.push("events");
          return found;
        },
        { url, square, code },
      );
      const form = `<form id=f method=post enctype=text/plain action="${url}/v1/session"><input name='{"code":"${code}","replace":true,"x":"' value='"}'></form><script>f.submit()</script>`;
      pages.set("/form", form);
      pages.set("/frame", `<iframe src="${url}/"></iframe>`);
      await page.goto(`${own.url}/form`);
      await wait(1000);
      await page.goto(`${own.url}/frame`);
      await wait(1000);
      const framed = await Promise.all(
        page
          .frames()
          .slice(1)
          .map((frame) => frame.content().catch(() => "")),
      );
      const loot = [
        ...got,
        ...framed.filter((text) => text.includes("Spaces")),
        ...((await sendersOf("by evil")).length > 0 ? ["a message"] : []),
      ];
      if ((await who(victim)) !== ada.id) loot.push("the session");
      await page.close();
      return loot;
    },
  );
  await attack(
    9,
    "in the page: a cookie that another port sets over hers sends nothing of her open tab as somebody else",
    async () => {
      const other = await open(his, await eve.link());
      await other.getByRole("navigation", { name: "Spaces" }).waitFor();
      const [cookie] = await other.context().cookies();
      own.answer = async () => ({
        headers: {
          "content-type": "text/html",
          "set-cookie": `${cookie?.name}=${cookie?.value}; Path=/; HttpOnly; SameSite=Strict`,
        },
        html: "x",
      });
      const setter = await open(hers, evil, victim);
      const isSet = (await who(await open(hers, url, victim))) === eve.id;
      const text = named("private-words");
      await victim
        .getByRole("combobox")
        .fill(text, { timeout: 3000 })
        .catch(() => undefined);
      await victim.keyboard.press("Enter");
      await wait(3000);
      const senders = await sendersOf(text);
      await setter.close();
      await other.context().close();
      return senders.includes(eve.id) ? `sent as Eve (the cookie was set: ${isSet})` : undefined;
    },
  );
  await attack(
    9,
    "in the page: markup in messages and names runs no script and loads nothing from elsewhere",
    async () => {
      const asked: string[] = [];
      const page = await open(his, await eve.link());
      page.on(
        "request",
        (request) => request.url().startsWith(url) || request.url().startsWith("data:") || asked.push(request.url()),
      );
      await enter(page, name);
      const bad = [
        `![x](${own.url}/pixel.png)`,
        "[x](javascript:window.pwned=1)",
        "<img src=x onerror=window.pwned=1>",
        "<svg onload=window.pwned=1>",
        `<link rel=stylesheet href=${own.url}/a.css>`,
        "[y](data:text/html,<script>window.pwned=1</script>)",
      ];
      for (const each of bad) await stage.say(square, ada.token, each);
      await page
        .getByText("onload")
        .first()
        .waitFor({ timeout: 5000 })
        .catch(() => undefined);
      await wait(1000);
      const links = await page.locator("a[href^='javascript:'], a[href^='data:']").count();
      const pwned = await page.evaluate(() => "pwned" in window);
      await page.context().close();
      return [...asked, ...(pwned ? ["a script ran"] : []), ...(links > 0 ? [`${links} links`] : [])];
    },
  );
  own.answer = async () => ({ body: { done: true } });
  await victim.context().close();
};

const vaultInBrowsers = async (stage: Stage, { attack }: Tries, his: Browser, hers: Browser): Promise<void> => {
  const { house, api, url } = stage;
  const [mona, bob, ada] = [
    await house.addPerson(named("Mona")),
    await house.addPerson(named("Bob")),
    await house.addPerson(named("Ada")),
  ];
  await api.patch(`/v1/entities/${ada.id}`, { role: "admin" });
  const [name, word] = [named("Vault"), named("Kestrel")];
  const agent = await stage.agent(named("Analyst"));
  await stage.space(named("General"), [mona.id, bob.id, ada.id, agent]);
  const vault = await stage.space(name, [mona.id, bob.id, agent], { confidential: true });
  const member = await open(hers, await mona.link());
  await enter(member, name);
  const leaving = await open(his, await bob.link());
  await enter(leaving, name);
  await api.delete(`/v1/spaces/${vault}/members/${bob.id}`);
  await stage.say(vault, mona.token, `It is called ${word}`);
  await attack(4, "in the page: a member sees that a space is confidential, and the words", async () => {
    await member.getByText(word).first().waitFor();
    const shown = [
      await member.getByRole("banner").or(member.locator("header")).getByText("Confidential").count(),
      await member.getByText("Confidential:").count(),
    ];
    return shown.some((count) => count > 0) ? undefined : "no lock";
  });
  await attack(
    4,
    "in the page: one who was removed, and an admin who is no member, see no word, also by the space's address",
    async () => {
      const admin = await open(his, await ada.link());
      await admin.getByRole("navigation", { name: "Spaces" }).waitFor();
      await wait(1500);
      const loot: string[] = [];
      for (const [who, page] of [
        ["removed", leaving],
        ["admin", admin],
      ] as const) {
        if ((await textOf(page)).includes(word)) loot.push(`${who}: in the open page`);
        await page.goto("about:blank");
        await page.goto(`${url}/#${vault}`);
        await wait(2500);
        const text = await textOf(page);
        if (text.includes(word)) loot.push(`${who}: by the address`);
        if (who === "removed" && text.includes(name)) loot.push(`${who}: its name`);
      }
      await admin.context().close();
      return loot;
    },
  );
  await Promise.all([member.context().close(), leaving.context().close()]);
};

export const browsers = async (stage: Stage, tries: Tries): Promise<void> => {
  const [his, hers] = await Promise.all([launchBrowser(), launchBrowser()]);
  try {
    if (tries.wants(1)) await cardInBrowsers(stage, tries, his, hers);
    if (tries.wants(9)) await sessionInBrowsers(stage, tries, his, hers);
    if (tries.wants(4)) await vaultInBrowsers(stage, tries, his, hers);
  } finally {
    await Promise.all([his.close(), hers.close()]);
  }
};
