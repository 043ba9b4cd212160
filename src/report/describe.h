/*
 * What is simulated, in words.
 */
#pragma once

#include "plan/setup.h"

/* Lines that say what is simulated, on what, with which options, and what is left out. */
void lh_describe_case(const LhSetup *setup, GString *out);

/* One line on the schedules that are not of this kind of attention; nothing if there are none. */
void lh_describe_left_out(const LhSetup *setup, GString *out);
