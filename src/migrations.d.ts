/** What drizzle-kit generates for each actor: the journal of its history and the statements, as text. */
declare module "*/migrations.js" {
  const migrations: import("./shared/database.ts").Migrations;
  export default migrations;
}
