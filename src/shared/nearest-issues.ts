import type { z } from "zod";

const otherKind = 100;

/** The distance of a value from one form of a union. Another kind of value counts more than all wrong fields. */
const distance = (issues: z.core.$ZodIssue[]): number =>
  issues.reduce((sum, { code, path }) => {
    if (code === "invalid_type" && path.length === 0) return sum + otherKind;
    return sum + (code === "invalid_union" ? 1.5 : 1);
  }, 0);

/** The issues of a union's nearest form, where the value fits none. */
const innermost = (issue: z.core.$ZodIssue): z.core.$ZodIssue[] => {
  if (issue.code !== "invalid_union") return [issue];
  const [nearest] = issue.errors.toSorted((one, other) => distance(one) - distance(other));
  if (!nearest) return [issue];
  return nearest.flatMap(innermost).map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }));
};

/** The issues of a value, of each union those of the form that it is nearest to. */
export const nearestIssues = ({ issues }: z.core.$ZodError): z.core.$ZodIssue[] => issues.flatMap(innermost);
