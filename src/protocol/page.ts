/** A page of things, oldest first unless it says otherwise; `nextCursor` is null on the last page. */
export type Page<T> = { items: T[]; nextCursor: string | null };
export type PageRequest = { limit: number; cursor?: string | undefined };
