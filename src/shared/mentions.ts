/** `@` marks of one text that are looked at. */
export const maxMentionMarks = 1000;

type Named = { id: string; name: string };

/** Letters, digits and marks continue a word, save in scripts that put no spaces between words. */
const continuesWord =
  /^[[\p{L}\p{N}\p{M}_]--[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]]/v;
const endsWord = /[\p{L}\p{N}\p{M}_]$/v;

const fold = (text: string): string => text.normalize("NFC").toLowerCase();

/**
 * The members that `text` mentions as `@Name`, in the order of `members`. Names may hold spaces; the longest match
 * counts; case does not matter. The name must be a whole word, and the `@` must not stand inside one (an address).
 * Members who share a name are all meant.
 */
export const mentionsIn = (text: string, members: Iterable<Named>): string[] => {
  if (!text.includes("@")) return [];
  const byName = Map.groupBy(members, (member) => fold(member.name));
  const lengths = [...new Set([...byName.keys()].map((name) => name.length))].sort((a, b) => b - a);
  const folded = fold(text);
  const mentioned = new Set<string>();
  let at = folded.indexOf("@");
  for (let marks = 0; at !== -1 && marks < maxMentionMarks; marks += 1) {
    const named = endsWord.test(folded.slice(Math.max(0, at - 2), at)) ? undefined : nameAt(folded, at + 1);
    for (const member of named ?? []) mentioned.add(member.id);
    at = folded.indexOf("@", at + 1);
  }
  return [...byName.values()].flat().flatMap((member) => (mentioned.has(member.id) ? [member.id] : []));

  function nameAt(within: string, start: number): Named[] | undefined {
    for (const length of lengths) {
      const named = byName.get(within.slice(start, start + length));
      if (named && !continuesWord.test(within.slice(start + length, start + length + 2))) return named;
    }
    return undefined;
  }
};

type Space = { id: string; members: Named[] };

/** The names that `text` mentions of those who are in another of these spaces, and not in the one that it is said in. */
export const absentIn = (spaces: Space[], spaceId: string, text: string): string[] => {
  const here = spaces.find(({ id }) => id === spaceId)?.members ?? [];
  const present = new Set(here.map(({ name }) => fold(name)));
  const everybody = new Map(spaces.flatMap(({ members }) => members.map((member) => [member.id, member] as const)));
  const mentioned = mentionsIn(text, everybody.values()).flatMap((id) => everybody.get(id)?.name ?? []);
  return [...new Set(mentioned.filter((name) => !present.has(fold(name))))];
};
