/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a test asks of the stand-in for the driver (driver.c), which it finds by dlsym().
 */
#pragma once

/* The function that was called last of those that are refused; "": none. Static. */
const char *standin_driver_refused(void);
