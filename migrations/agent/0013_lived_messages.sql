ALTER TABLE `search_entries` ADD `lived` text;--> statement-breakpoint
CREATE INDEX `search_entries_message` ON `search_entries` (`ref`) WHERE type = 'message';