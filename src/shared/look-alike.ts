import { unseen } from "./invisible.ts";

/**
 * Names that people take for one another, after the skeletons of UTS 39. Its whole table has 6,000 pairs, and also
 * calls names of one alphabet alike, such as "rn" and "m" in any script. This one has the letters that stand for Latin
 * ones most often. `docs/decisions/2026-11-23-names-that-look-alike.md` says what is left out.
 */
const twins: Record<string, string> = {
  ...{ a: "аɑαᴀⲁ", b: "ЬʙᏏⲃ", c: "сᴄⲥϲ", d: "ԁᴅᏧ", e: "еҽᴇ℮ⲉ", f: "ꜰք", g: "ɡցɢ", h: "һհʜᏂⲏ", i: "іιɩıɪᎥⲓ" },
  ...{ j: "јϳյᴊ", k: "кκᴋⲕ", l: "ӏӀǀʟⳑ", m: "ᴍⲙ", n: "ոηɴⲛ", o: "оοօᴏⲟσ", p: "рρᴘⲣ", q: "ԛզ", r: "гʀⲅ", s: "ѕꜱƽ" },
  ...{ t: "τᴛⲧ", u: "υսᴜʋ", v: "νѵᴠ", w: "ԝѡաᴡⲱ", x: "хχⲭ", y: "уγүʏⲩ", z: "ᴢⲍ" },
  ...{ A: "АΑᎪꓮ", B: "ВΒᏴꓐ", C: "СᏟꓚϹ", D: "Ꭰꓓ", E: "ЕΕᎬꓰ", F: "Ϝꓝ", G: "ԌᏀᏳꓖ", H: "НΗᎻꓧ", I: "ІΙꓲⲒ", J: "ЈᎫꓙ" },
  ...{ K: "КΚᏦꓗ", L: "ᏞꓡԼ", M: "МΜᎷꓟ", N: "Νꓠ", O: "ОΟՕꓳ", P: "РΡᏢꓑ", Q: "Ԛ", R: "ᎡᏒꓣ", S: "ЅՏᏕᏚꓢ", T: "ТΤᎢꓔ" },
  ...{ U: "Սꓴ", V: "ѴᏙꓦ", W: "ԜᎳᏔꓪ", X: "ХΧꓫ", Y: "ΥҮУᎩᎽꓬ", Z: "ΖᏃꓜ" },
  ...{ "-": "‐‒–—―−", "'": "’‘ʼʹ′`", ".": "·•" },
};

const latin = new Map(
  Object.entries(twins).flatMap(([letter, all]) => [...all].map((twin) => [twin, letter] as const)),
);

const inLatin = (text: string): string => text.replace(/./gsu, (letter) => latin.get(letter) ?? letter);

/** Characters that show nothing by themselves. */
const blank = new RegExp(String.raw`\s|${unseen}`, "gv");

/** A text as people tell it from others: without invisible characters, without case, in one form of look-alikes. */
export const asSeen = (text: string): string => text.normalize("NFKC").replace(blank, "").toLowerCase();

/** Small Cherokee letters, which look like their capitals. Unicode's case folding takes them for these too. */
const smallCherokee = /[\u13F8-\u13FD\uAB70-\uABBF]/g;

/** A dot on a letter that has one already: one is drawn. */
const secondDot = /(?<=[ij]\p{M}*)\u0307/gu;

/** The ways to read a name: by its letters, and with those that share one stroke or one ring taken for each other. */
const looksOf = (name: string): string[] => {
  // A compatibility form of a letter may look less like a Latin one than the letter does.
  const plain = inLatin(name).normalize("NFKD").replace(blank, "");
  const letters = inLatin(plain.replace(smallCherokee, (letter) => letter.toUpperCase()));
  const strokes = letters.replace(/[I1|]/g, "l").replace(/0/g, "O");
  const read = [letters, strokes].map((each) =>
    inLatin(each.toLowerCase()).replace(secondDot, "").replaceAll("m", "rn"),
  );
  return [asSeen(name), ...read];
};

/** The first two of these that look alike; undefined where each can be told from all others. */
export const firstTwins = <Named extends { name: string }>(all: Iterable<Named>): [Named, Named] | undefined => {
  const known = new Map<string, Named>();
  for (const each of all) {
    const looks = looksOf(each.name);
    const twin = looks.map((look) => known.get(look)).find((other) => other !== undefined);
    if (twin) return [twin, each];
    for (const look of looks) known.set(look, each);
  }
  return undefined;
};

/** The first of `others` that looks like this name. */
export const twinOf = <Named extends { name: string }>(name: string, others: Iterable<Named>): Named | undefined => {
  const looks = new Set(looksOf(name));
  for (const other of others) if (looksOf(other.name).some((look) => looks.has(look))) return other;
  return undefined;
};
