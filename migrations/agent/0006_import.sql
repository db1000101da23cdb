CREATE TABLE `imports` (
	`id` integer PRIMARY KEY NOT NULL,
	`workspace_id` text NOT NULL,
	`agent_id` text NOT NULL,
	`token` text NOT NULL,
	`envelope` text,
	`head` text,
	`report` text,
	`shares` integer DEFAULT 0 NOT NULL,
	`journal_up_to` integer DEFAULT 0 NOT NULL,
	`touched_at` integer NOT NULL,
	`completed_at` integer
);
--> statement-breakpoint
CREATE TABLE `known_names` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL
) WITHOUT ROWID;
