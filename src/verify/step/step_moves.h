/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of a step, and its messages between stages.
 */
#pragma once

#include "verify/step/step_values.h"

void lh_step_moves_meet(LhStepValues *v, const LhMeeting *meeting);
/* Applies the effects of an exchange of the step at its start and at its end. */
void lh_step_moves_send(LhStepValues *v, uint32_t op);
void lh_step_moves_receive(LhStepValues *v, uint32_t op);
void lh_step_moves_clear(LhStepValues *v);
