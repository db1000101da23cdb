ALTER TABLE `erasure_visits` ADD `requests` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `erasures` ADD `requests` integer DEFAULT 0 NOT NULL;