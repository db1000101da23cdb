ALTER TABLE `redactions` ADD `message_ids` text;--> statement-breakpoint
ALTER TABLE `redactions` ADD `rows` integer DEFAULT 0 NOT NULL;