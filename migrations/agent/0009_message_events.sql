DROP INDEX `inbox_event_id_unique`;--> statement-breakpoint
CREATE UNIQUE INDEX `inbox_event_id` ON `inbox` (`event_id`) WHERE type <> 'space_message';