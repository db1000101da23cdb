ALTER TABLE `runs` ADD `thought_ms` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `runs` ADD `thinks_since` integer;