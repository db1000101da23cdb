import { describe, expect, test } from "vitest";
import { firstTwins, twinOf } from "../../src/shared/look-alike.ts";

const alike = (one: string, other: string): boolean =>
  twinOf(one, [{ name: other }]) !== undefined && firstTwins([{ name: one }, { name: other }]) !== undefined;

describe("two names", () => {
  test.each([
    ["Ada", "ada"],
    ["Ada", "Аdа"],
    ["scope", "ѕсоре"],
    ["Husam", "Ηuѕаm"],
    ["Bob", "Воb"],
    ["Alice", "AIice"],
    ["Alice", "A1ice"],
    ["Alice", "Ali\u0307ce"],
    ["Jim", "Jі\u0307m"],
    ["Team 0", "Team O"],
    ["Admin", "Adrnin"],
    ["Admin", "АDМIN"],
    ["Data Analyst", "DataAnalyst"],
    ["Ann-Lee", "Ann–Lee"],
    ["O'Brien", "O’Brien"],
    ["Ann", "Ａｎｎ"],
    ["Ann", "𝐀𝐧𝐧"],
    ["Ann", "ᴀɴɴ"],
    ["Ann", "A\u200bnn"],
    ["НИНА", "Нина"],
    ["Γιάννης", "ΓΙΆΝΝΗΣ"],
    ["Jose\u0301", "José"],
    ["Kate", "Kаtе"],
    ["kate", "Кate"],
    ["ꓮda", "Ada"],
    ["Ꭺda", "Ada"],
    ["Ꮢoger", "Roger"],
    ["ᎽᏔᏕᏳ", "YWSG"],
    ["ꭺdꭺ", "Ada"],
    ["ꮃꭼꮪ", "Wes"],
    ["ᏼob", "bob"],
    ["ꮳꮃꭹ", "ᏣᎳᎩ"],
    ["ⲔⲀⲦⲈ", "Kate"],
    ["Ⲃⲟⲃ", "Bob"],
    ["Ⲏⲉⲛry", "Henry"],
    ["Ⲓinda", "Linda"],
    ["ⲘⲀⲬ", "Max"],
    ["Max\ufffc", "Max"],
    ["ϹHRIS", "chris"],
    ["Ьill", "bill"],
    ["յohn", "john"],
  ])("[C6] look the same: %s and %s", (one, other) => expect(alike(one, other)).toBe(true));

  test.each([
    ["Ali", "All"],
    ["Kai", "Kal"],
    ["Jörg", "Jorg"],
    ["José", "Jose"],
    ["Анна", "Анне"],
    ["Agent 1", "Agent 2"],
    ["Mona", "Nona"],
    ["منى", "منير"],
    ["田中", "田口"],
    ["👩‍👩‍👧", "👩‍👩‍👦"],
    ["", "a"],
  ])("[C6] can be told apart: %s and %s", (one, other) => expect(alike(one, other)).toBe(false));
});
