CREATE TABLE `compartments` (
	`space_id` text PRIMARY KEY NOT NULL,
	`mind_id` text NOT NULL
);
--> statement-breakpoint
ALTER TABLE `agent` ADD `compartment_id` text;--> statement-breakpoint
ALTER TABLE `agent` ADD `compartment_space_id` text;