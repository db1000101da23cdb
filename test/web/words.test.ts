import { describe, expect, test } from "vitest";
import type { Message } from "../../src/client/index.ts";
import { day, daysAgo } from "../../src/web/look/time.tsx";
import { codeIn } from "../../src/web/session/session.ts";
import { preview } from "../../src/web/spaces/space-items.ts";
import { presence, presenceText } from "../../src/web/timeline/presence.ts";
import { after, husam, loaded, message, nova, runId, sara, space, start, welcome } from "../client/frames.ts";
import { ids } from "../support/node/peer.ts";

describe("the presence line", () => {
  const active = { type: "agent.active", entityId: nova.id, runId: runId("a") } as const;
  const typing = { type: "member.typing", entityId: sara.id } as const;
  const textOf = (...frames: Parameters<typeof after>) => presenceText(presence(after(welcome(0), ...frames)));

  test("an agent is thinking, then writing, then absent", () => {
    expect(textOf(active)).toBe("Nova is thinking");
    expect(textOf(active, start("a"))).toBe("Nova is writing");
    expect(textOf()).toBe("");
  });

  test("people are typing", () => {
    expect(textOf(active, typing)).toBe("Nova is thinking · Sara is typing");
  });

  test("an agent waits for the members it asked until they have spoken", () => {
    const asked = message(1, { sender: nova, expectsReply: true, mentions: [sara.id, husam.id] });
    const waiting = (...later: Message[]) => textOf(loaded([asked, ...later]));
    expect(waiting()).toBe("Nova is waiting for Husam and Sara");
    expect(waiting(message(2, { sender: husam }))).toBe("Nova is waiting for Sara");
    expect(waiting(message(2, { sender: husam }), message(3))).toBe("");
    const left = { type: "member.left", cursor: 3, entityId: sara.id, name: sara.name } as const;
    expect(textOf(loaded([asked, message(2, { sender: husam })]), left)).toBe("");
  });

  test("an agent whose model is away tries again until it is back or its run has ended", () => {
    const at = { entityId: nova.id, runId: runId("a") };
    const rests = (reason: string) => ({ type: "agent.inactive", ...at, reason }) as const;
    const away = rests("model_unavailable");
    expect(textOf(away)).toBe("Nova is trying again soon");
    expect(textOf({ ...away, reason: "guest_away", events: 2 })).toBe("Nova is away: 2 events wait");
    expect(textOf(away, active)).toBe("Nova is thinking");
    expect(textOf(away, { type: "run.canceled", ...at })).toBe("");
    for (const reason of ["waiting_reply", "interrupted", "model_rejected"]) expect(textOf(rests(reason))).toBe("");
  });

  test("more than three participants are counted, not named", () => {
    const doings = ["A", "B", "C", "D"].map((name) => ({ entityId: name, name, doing: "typing" as const }));
    expect(presenceText(doings.slice(0, 2))).toBe("A and B are typing");
    expect(presenceText(doings)).toBe("4 participants are typing");
  });
});

describe("the list of spaces", () => {
  const previewOf = (text: string, sender = sara) => ({ messageId: "msg_1", sender, text });

  test("previews a message as one plain line", () => {
    const summary = { spaceId: space.id, name: "Alpha", seq: 1, unread: 0, mentions: 0, working: [], needsYou: 0 };
    const words = (newest?: ReturnType<typeof previewOf>) =>
      preview({ ...summary, at: space.createdAt, ...(newest && { preview: newest }) }, husam.id);
    const text = "## Sums\n\n- **Up** [12%](https://example.com)\n\n```ts\ncode\n```";
    expect(words(previewOf(text))).toBe("Sara: Sums Up 12% code");
    expect(words(previewOf("hi", husam))).toBe("You: hi");
    expect(words()).toBe("Nothing said yet");
  });
});

describe("days", () => {
  test("are calendar days, not spans of 24 hours", () => {
    expect(daysAgo(new Date(2026, 1, 17, 23, 59), new Date(2026, 1, 18, 0, 1))).toBe(1);
    expect(day(new Date(2026, 1, 18, 0, 1).toISOString(), new Date(2026, 1, 18, 23, 59))).toBe("Today");
  });
});

describe("a sign-in link", () => {
  const code = `si_${ids.mint("wsp")}_${"A-z_9".repeat(8)}abc`;

  test("holds a code, as a whole or after its mark", () => {
    for (const text of [code, ` http://127.0.0.1:8787/#sign-in=${code}\n`, `#sign-in=${code}`]) {
      expect(codeIn(text)).toBe(code);
    }
  });

  test("is none where it is cut, or something else", () => {
    for (const text of ["", "hello", code.slice(0, -1), `${code}x`, "#token=a.b.c"]) expect(codeIn(text)).toBeNull();
  });
});
