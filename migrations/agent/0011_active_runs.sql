DROP TABLE `active_runs`;--> statement-breakpoint
CREATE INDEX `runs_active` ON `runs` (`ordinal`) WHERE continuity = 'timeline' and status in ('running', 'waiting_reply');