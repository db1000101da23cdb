/** What drizzle-kit generates for each actor: the journal of its history and the statements, as text. */
declare module "*/migrations.js" {
  const history: Omit<import("./shared/database.ts").Migrations, "newest">;
  export default history;
}
/** The tables that a history ends in, as `npm run migrations` writes them. */
declare module "*/newest.sql" {
  const newest: string;
  export default newest;
}
