/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of the stand-in driver (driver.c) for tests, found by dlsym(). */
#pragma once

/* The last rejected function that was called; "" if none. Static. */
const char *standin_driver_refused(void);
