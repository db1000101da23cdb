CREATE INDEX `runs_ended_by` ON `runs` (`ended_by`) WHERE ended_by is not null;--> statement-breakpoint
CREATE INDEX `runs_rested` ON `runs` (`completed_at`) WHERE rests is not null;