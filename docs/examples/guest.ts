import { setTimeout as pause } from "node:timers/promises";

/** A guest agent's program (docs/guests.md): `GUEST_ID=ent_… GUEST_TOKEN=… node docs/examples/guest.ts`. */
const { COLLOQUY_URL = "http://127.0.0.1:8787", GUEST_ID = "", GUEST_TOKEN = "" } = process.env;
const headers = { authorization: `Bearer ${GUEST_TOKEN}`, "content-type": "application/json" };

type Event = { eventId: string; type: string; data: { message: { spaceId: string; text?: string } } };
type Claimed = { run: { id: string }; events: Event[]; lease: string };

/** Sent again until it is answered: the same key is the same act. */
const post = async (path: string, body: () => BodyInit): Promise<Response> => {
  for (;;) {
    const request = { method: "POST", headers, body: body(), duplex: "half" };
    const response = await fetch(`${COLLOQUY_URL}/v1/agents/${GUEST_ID}/${path}`, request).catch(() => undefined);
    if (response?.ok) return response;
    if (response && response.status < 500) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    await pause(500);
  }
};
const send = (path: string, value: object): Promise<Response> => post(path, () => JSON.stringify(value));

/** Put your own mind here: `claimed.input` and `claimed.tools` are what a model would be given. */
const answerTo = (text: string): string => {
  const number = /\d+/.exec(text)?.[0];
  return number ? `Parcel ${number} is on my bike, two streets away.` : "Which parcel? Tell me its number.";
};

/** A speech, line by line, as a model would write it. */
const wordByWord = (text: string): ReadableStream<Uint8Array> => {
  const lines = [...text.split(/(?<= )/).map((delta) => ({ delta })), { done: true }];
  const line = (): Uint8Array => new TextEncoder().encode(`${JSON.stringify(lines.shift())}\n`);
  return new ReadableStream({
    pull: async (words) => (lines.length > 0 ? words.enqueue(await pause(20, line())) : words.close()),
  });
};

const live = async ({ run: { id }, events, lease }: Claimed): Promise<void> => {
  for (const { eventId, data } of events.filter(({ type }) => type === "space_message")) {
    const { spaceId, text = "" } = data.message;
    await send(`runs/${id}/calls`, { name: "enter_space", input: { spaceId }, key: `enter-${eventId}`, lease });
    await post(`runs/${id}/speech?lease=${lease}&key=${eventId}`, () => wordByWord(answerTo(text)));
  }
  await send(`runs/${id}/complete`, { summary: `answered ${events.length}`, lease });
};

for (;;) {
  const claimed = await send("claims", { waitSeconds: 50 });
  if (claimed.status === 200) await live((await claimed.json()) as Claimed).catch(console.error);
}
