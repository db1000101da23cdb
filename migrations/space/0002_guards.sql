-- The timer that guards the deliveries has no row any more. The alarm that it set stays, and runs its handler.
DELETE FROM `timers` WHERE `name` = 'deliver';
